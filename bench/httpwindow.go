package main

import "time"

// httpWindow is what passed while a load on a server was watched.
type httpWindow struct {
	took             time.Duration
	totals           httpTotals
	frontEnd, all    time.Duration // CPU of the process that listens and its children, and of everything that serves
	bench            time.Duration // CPU of this process
	resident         float64       // of everything that serves, the most that was seen, in MB
	frontEndResident float64       // likewise
}

// betweenLooks is how often memory is looked at.
const betweenLooks = 250 * time.Millisecond

// consumption is what a server has used at one moment.
type consumption struct {
	at            time.Time
	frontEnd, all usageSum
}

type usageSum struct {
	cpu      time.Duration
	resident float64 // MB
}

// observe lets the load run for a while and reads what the server used.
func (l *httpLoad) observe(h *host, d time.Duration) (httpWindow, error) {
	before, err := h.consumption()
	if err != nil {
		return httpWindow{}, err
	}
	start, own := l.totals(), ownCPU()
	l.measuring.Store(true)
	defer l.measuring.Store(false)
	w := httpWindow{}
	after := before
	for end := before.at.Add(d); after.at.Before(end); {
		if err := l.wait(min(betweenLooks, time.Until(end))); err != nil {
			return w, err
		}
		if after, err = h.consumption(); err != nil {
			return w, err
		}
		w.resident = max(w.resident, after.all.resident)
		w.frontEndResident = max(w.frontEndResident, after.frontEnd.resident)
	}
	w.totals, w.bench = l.totals().since(start), ownCPU()-own
	w.took = after.at.Sub(before.at)
	w.frontEnd, w.all = after.frontEnd.cpu-before.frontEnd.cpu, after.all.cpu-before.all.cpu
	if w.totals.requests == 0 {
		return w, errNothing
	}
	return w, nil
}

func (h *host) consumption() (consumption, error) {
	var c consumption
	for _, root := range h.roots() {
		if err := c.all.add(root); err != nil {
			return c, err
		}
	}
	err := c.frontEnd.add(h.frontEnd)
	c.at = time.Now()
	return c, err
}

// add adds what a process and its descendants have used.
func (s *usageSum) add(root int) error {
	u, err := readUsage(root)
	if err != nil {
		return err
	}
	s.cpu += u.cpuSince(usage{})
	s.resident += sum(u.megabytes())
	return nil
}

// rates adds what every load on a server has.
func (w *httpWindow) rates(fs *figures) {
	percent := func(cpu time.Duration) float64 { return 100 * ratio(cpu.Seconds(), w.took.Seconds()) }
	fs.add("requests", "/s", perSecond(w.totals.requests, w.took))
	fs.add("events with text", "/s", perSecond(w.totals.events, w.took))
	fs.add("tokens per event", "", w.totals.perEvent())
	fs.add("front end CPU per million events", "s", ratio(w.frontEnd.Seconds(), float64(w.totals.events)/1e6))
	fs.add("front end CPU", "%", percent(w.frontEnd))
	fs.add("engines' CPU", "%", percent(w.all-w.frontEnd))
	fs.add("bench's own CPU", "%", percent(w.bench))
	fs.add("front end resident", "MB", w.frontEndResident)
}

// perMillion is CPU-seconds per million tokens.
func (w *httpWindow) perMillion(cpu time.Duration) float64 {
	return ratio(cpu.Seconds(), w.totals.tokens()/1e6)
}

func (w *httpWindow) tokensPerSecond() float64 { return ratio(w.totals.tokens(), w.took.Seconds()) }
