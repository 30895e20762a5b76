package supervisor

import "time"

// timing is how long things may take. Only tests have one of their own.
type timing struct {
	// killGrace is how long a worker may overstay the end of its drain.
	killGrace time.Duration
	// leaveGrace is how long a worker that does not drain may live on after its socket has ended.
	leaveGrace time.Duration

	// silence is how long a worker may say nothing before somebody who looks at it has it pinged.
	silence time.Duration
	// patience is how long a ping waits, and any call to a worker that is known to be frozen.
	patience time.Duration
	// frozenAfter is how long a worker must have owed an answer to be called frozen when somebody gives up on it. It is
	// shorter than patience, which a ping may have spent in part before it was sent.
	frozenAfter time.Duration

	// firstBackoff is the pause before a restart; it doubles with every death up to lastBackoff, and starts over after a
	// process that lived for longer than deathWindow.
	firstBackoff, lastBackoff time.Duration
	// deathsAllowed within deathWindow are final.
	deathWindow   time.Duration
	deathsAllowed int

	// announce bounds the attempt to tell a frontend of a death.
	announce time.Duration
}

func defaultTiming() timing {
	return timing{
		killGrace:     5 * time.Second,
		leaveGrace:    time.Second,
		silence:       time.Second,
		patience:      time.Second,
		frozenAfter:   500 * time.Millisecond,
		firstBackoff:  time.Second,
		lastBackoff:   30 * time.Second,
		deathWindow:   time.Minute,
		deathsAllowed: 5,
		announce:      2 * time.Second,
	}
}
