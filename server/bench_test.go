package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// BenchmarkRecordAttestation measures the rate of new attestations on a server on
// loopback, with 64 connections. Client and server share the cores.
func BenchmarkRecordAttestation(b *testing.B) {
	backend := newBackend(b)
	ci := backend.signer("cn=ci,ou=build,o=acme")
	envelopes := make([][]byte, b.N)
	for i := range envelopes {
		envelopes[i] = ci.statement(b, commitID(i%1000), "test:go", ledger.Pass, i)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			body := envelopes[next.Add(1)-1]
			if err := postOnce(client, backend.url+attestationsPath, backend.writer, body); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "attestations/s")
}

func postOnce(client *http.Client, url, token string, body []byte) error {
	req, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", typeJSON)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s %v", resp.Status, text, err)
	}
	return nil
}
