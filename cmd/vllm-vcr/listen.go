package main

import (
	"fmt"
	"net"

	"vllm-vcr/config"
	"vllm-vcr/httpserve"
	"vllm-vcr/unixsocket"
)

// listenControl opens the control API's socket before anything starts, so that a taken port ends the program at once.
func listenControl(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := open(address)
	if err != nil {
		return nil, fmt.Errorf("--control-address %s: %w", address, err)
	}
	return l, nil
}

func open(address string) (net.Listener, error) {
	if path, ok := config.SocketPath(address); ok {
		return unixsocket.Listen(path)
	}
	return listenTCP(address)
}

// listenTCP keeps an IPv4 address from standing for IPv6 as well, as 0.0.0.0 would.
func listenTCP(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.To4() != nil {
		return net.Listen("tcp4", address)
	}
	return net.Listen("tcp", address)
}

// frontEndPair reads the certificate of the front end, nil if there is none to be.
func frontEndPair(cfg config.Config) (*httpserve.KeyPair, error) {
	return keyPair("--ssl-certfile", cfg.SSLCertFile, cfg.SSLKeyFile)
}

// keyPair reads the certificate that flag names, nil if there is none to be.
func keyPair(flag, certFile, keyFile string) (*httpserve.KeyPair, error) {
	if certFile == "" {
		return nil, nil
	}
	pair, err := httpserve.LoadKeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return pair, nil
}
