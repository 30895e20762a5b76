package zmtp

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestListen_Address(t *testing.T) {
	for _, address := range []string{"tcp://127.0.0.1:0", "tcp://*:0", "tcp://localhost:0"} {
		t.Run(address, func(t *testing.T) {
			l := listen(t, address, Options{Type: Router})
			if got := l.Address(); strings.HasSuffix(got, ":0") || strings.Contains(got, "*") {
				t.Errorf("address = %s, want one that can be dialled", got)
			}
			dial(t, l.Address(), Options{Type: Dealer})
			accept(t, l)
		})
	}
}

func TestListen_Faults(t *testing.T) {
	taken := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
	_, err := Listen(taken.Address(), Options{Type: Router})
	wantError(t, err, syscall.EADDRINUSE, "listen "+taken.Address())
	for address, fault := range map[string]string{
		"udp://127.0.0.1:1":    "want tcp://host:port",
		"ipc:///no/such/dir/x": "no such file",
	} {
		if _, err := Listen(address, Options{Type: Router}); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: error = %v, want one that says %q", address, err, fault)
		}
	}
	if _, err := Listen("tcp://127.0.0.1:0", Options{}); err == nil || !strings.Contains(err.Error(), "socket type") {
		t.Errorf("error = %v, want one about the socket type", err)
	}
}

func TestListener_Close(t *testing.T) {
	l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
	waiting := dial(t, l.Address(), Options{Type: Dealer}) // never accepted
	errC := make(chan error, 1)
	kept := accept(t, l)
	go func() { _, err := l.Accept(); errC <- err }()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	}
	if err := await(t, "Accept's return", errC); !errors.Is(err, ErrClosed) {
		t.Errorf("Accept = %v, want closed", err)
	}
	if err := kept.Err(); err != nil {
		t.Errorf("accepted connection ended: %v", err)
	}
	send(t, kept, "goes on")
	receive(t, waiting)
}

func TestListener_Close_EndsTheUnaccepted(t *testing.T) {
	l := listen(t, "tcp://127.0.0.1:0", Options{Type: Pull})
	push := dial(t, l.Address(), Options{Type: Push})
	if err := l.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	await(t, "end of the connection", push.Done())
}

func TestListen_SocketFile(t *testing.T) {
	path := t.TempDir() + "/socket"
	l := listen(t, "ipc://"+path, Options{Type: Router})
	if got, want := l.Address(), "ipc://"+path; got != want {
		t.Errorf("address = %s, want %s", got, want)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
	dealer := dial(t, l.Address(), Options{Type: Dealer})
	router := accept(t, l)
	send(t, dealer, "over ipc")
	receive(t, router)
	if err := l.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v, want no socket", err)
	}
}

func TestListen_SocketFileInTheWay(t *testing.T) {
	dir := t.TempDir()
	file, live, stale := dir+"/file", dir+"/live", dir+"/stale"
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	listen(t, "ipc://"+live, Options{Type: Router})
	ln, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = ln.Close()

	if _, err := Listen("ipc://"+file, Options{Type: Router}); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("on a file: error = %v, want one that says it is no socket", err)
	}
	if b, err := os.ReadFile(file); string(b) != "precious" {
		t.Errorf("the file in the way is now %q, %v", b, err)
	}
	_, err = Listen("ipc://"+live, Options{Type: Router})
	wantError(t, err, syscall.EADDRINUSE, live)
	if _, err := os.Stat(live); err != nil {
		t.Errorf("the live socket is gone: %v", err)
	}
	listen(t, "ipc://"+stale, Options{Type: Router})
}
