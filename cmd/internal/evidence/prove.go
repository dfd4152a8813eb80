package evidence

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// A prover leads all proofs to one checkpoint: the server proves each event with the newest one.
type prover struct {
	checkpoint proof.Checkpoint
	signed     []byte
	hashes     tlog.HashReader
}

// prove exports a checkpoint that covers all events of the export, and their proofs.
func (e *exporter) prove(ctx context.Context) error {
	signed, c, err := e.covering(ctx)
	if err != nil {
		return fmt.Errorf("read the checkpoint of the log: %w", err)
	}
	tiles := verify.NewTiles(func(file string) ([]byte, error) {
		return again(ctx, func() ([]byte, error) { return e.client.LogFile(ctx, e.org, e.log.Epoch, file) })
	})
	p := &prover{c, signed, tlog.TileHashReader(tlog.Tree{N: c.Size, Hash: c.Root}, tiles)}
	e.page.Log = LogPage{Origin: c.Origin, Key: e.log.Key, Size: c.Size}
	if err := e.out.add(CheckpointFile, e.Now, signed); err != nil {
		return err
	}
	if err := e.out.add(KeyFile, e.Now, []byte(e.log.Key+"\n")); err != nil {
		return err
	}

	done := 0
	for part := range slices.Chunk(e.events, chunk) {
		e.Progress("exporting proofs", int64(done), int64(len(e.events)))
		proofs := concurrently(part, func(v exported) ([]byte, error) { return e.proofOf(ctx, v.id) })
		for i, v := range part {
			text, err := proofs[i].value, proofs[i].err
			if client.CodeOf(err) == ledger.CodeNotInCheckpoint && e.log.Epoch > 1 {
				e.manifest.Unproven = append(e.manifest.Unproven, v.id) // recorded while the log was not signed
				continue
			}
			if err == nil {
				text, err = p.lead(text)
			}
			if err != nil {
				return fmt.Errorf("prove the event %s: %w", v.id, err)
			}
			if err := e.out.add(ProofFile(v.id), v.at, text); err != nil {
				return err
			}
		}
		done += len(part)
	}
	return nil
}

// proofOf reads the proof of an event.
func (e *exporter) proofOf(ctx context.Context, event string) ([]byte, error) {
	return again(ctx, func() ([]byte, error) { return e.client.EventProof(ctx, e.org, event) })
}

// lead returns a proof with the path to the checkpoint of the export. A proof in a log that was
// replaced stays as it is.
func (p *prover) lead(text []byte) ([]byte, error) {
	inclusion, err := proof.ParseInclusion(text)
	if err != nil {
		return nil, err
	}
	c, err := proof.ReadCheckpoint(inclusion.Checkpoint)
	if err != nil || c.Origin != p.checkpoint.Origin || bytes.Equal(inclusion.Checkpoint, p.signed) {
		return text, err
	}
	path, err := tlog.ProveRecord(p.checkpoint.Size, inclusion.Index, p.hashes)
	if err != nil {
		return nil, fmt.Errorf("find its path to the checkpoint: %w", err)
	}
	inclusion.Path, inclusion.Checkpoint = path, p.signed
	return inclusion.Format(), nil
}

// covering reads a checkpoint that covers all events that there are now.
func (e *exporter) covering(ctx context.Context) (signed []byte, c proof.Checkpoint, err error) {
	now, err := again(ctx, func() (ledger.Log, error) { return e.client.Log(ctx, e.org) })
	if err != nil {
		return nil, c, err
	}
	err = e.await(ctx, signTimeout, func() (bool, error) {
		signed, err = again(ctx, func() ([]byte, error) {
			return e.client.LogFile(ctx, e.org, now.Epoch, "checkpoint")
		})
		if err == nil {
			c, err = proof.ReadCheckpoint(signed)
		}
		return c.Size >= now.Events, err
	})
	e.log = now
	return signed, c, err
}
