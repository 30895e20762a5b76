package httpserve

import "net"

// raw is the connection under TLS, or conn itself.
func raw(conn net.Conn) net.Conn {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return conn
}
