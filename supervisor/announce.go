package supervisor

import (
	"context"
	"errors"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// announce tells the frontend of a dead engine what the engine could not say any more, where that is wanted. It goes to all
// of the frontend's output sockets at once.
func (f *Fleet) announce(m *member) {
	if !f.cfg.AnnounceDeath || m.addresses == nil {
		return
	}
	for _, address := range m.addresses.Outputs {
		f.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), f.timing.announce)
			defer cancel()
			if err := announceAt(ctx, address); err != nil {
				f.log.Warn().Int("engine", m.index).Err(err).Msg("death not announced")
			}
		})
	}
}

func announceAt(ctx context.Context, address string) error {
	conn, err := zmtp.Dial(ctx, address, zmtp.Options{Type: zmtp.Push})
	if err != nil {
		return err
	}
	err = conn.Send([]byte(enginecore.EngineCoreDead))
	return errors.Join(err, conn.Close(ctx))
}
