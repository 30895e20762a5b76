package supervisor

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is also what the tests start: as a worker that behaves in the way its environment names, as a worker
// started by the supervisor's own command line, as a worker's child, or as a whole supervisor.
const (
	roleVar       = "SUPERVISOR_TEST_ROLE"
	fleetVar      = "SUPERVISOR_TEST_FLEET"
	grandchildVar = "SUPERVISOR_TEST_GRANDCHILD"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(grandchildVar) != "":
		<-time.After(time.Minute) // it should be killed long before
		os.Exit(0)
	case os.Getenv(companionVar) != "":
		os.Exit(playCompanion(os.Getenv(companionVar)))
	case os.Getenv(roleVar) != "":
		os.Exit(playWorker(os.Getenv(roleVar)))
	case len(os.Args) == 2 && os.Args[1] == "worker":
		os.Exit(playWorker(good))
	case os.Getenv(fleetVar) != "":
		os.Exit(playSupervisor(os.Getenv(fleetVar)))
	}
	// The race detector has a process wait for a second before it ends.
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	flag.Parse()
	if !flagGiven("rapid.checks") {
		_ = flag.Set("rapid.checks", "30") // each is a fleet of processes; the flag is rapid's own
	}
	goleak.VerifyTestMain(m)
}

func flagGiven(name string) bool {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}
