package zmtp

import "testing"

func TestSocketType_CheckPeer(t *testing.T) {
	all := []SocketType{Dealer, Router, Push, Pull, Sub, XSub, Pub, XPub}
	compatible := map[[2]SocketType]bool{
		{Dealer, Dealer}: true, {Dealer, Router}: true, {Router, Router}: true, {Push, Pull}: true,
		{Sub, Pub}: true, {Sub, XPub}: true, {XSub, Pub}: true, {XSub, XPub}: true,
	}
	for _, a := range all {
		for _, b := range all {
			want := compatible[[2]SocketType{a, b}] || compatible[[2]SocketType{b, a}]
			if got := a.checkPeer(b) == nil; got != want {
				t.Errorf("%s accepts %s = %v, want %v", a, b, got, want)
			}
		}
	}
	for ours, theirs := range map[SocketType]SocketType{Dealer: "REP", Router: "REQ"} {
		if err := ours.checkPeer(theirs); err != nil {
			t.Errorf("%s refuses %s: %v", ours, theirs, err)
		}
	}
	wantError(t, Dealer.checkPeer("dealer"), ErrProtocol, "a DEALER socket wants one of ROUTER, DEALER, REP")
}
