package httpserve

import "net"

// Raw is the connection under TLS, or conn itself where there is none. Whoever reads or writes it ruins the TLS over it; its
// state may be looked at, and it may be closed.
func Raw(conn net.Conn) net.Conn {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return conn
}
