// Command client records an attestation with the generated client and reads it back.
// Its standard input is a DSSE envelope. LEDGERD_URL is the server's URL, LEDGERD_TOKEN
// a token of the org acme.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"

	"example.com/client/api"
)

const org, repo = "acme", "api"

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	token := os.Getenv("LEDGERD_TOKEN")
	client, err := api.NewClientWithResponses(
		os.Getenv("LEDGERD_URL"), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}))
	if err != nil {
		return err
	}

	var envelope api.Envelope
	if err := json.NewDecoder(os.Stdin).Decode(&envelope); err != nil {
		return err
	}
	recorded, err := client.RecordAttestationWithApplicationVndDsseEnvelopeV1PlusJSONBodyWithResponse(ctx, org, repo,
		envelope)
	if err != nil {
		return err
	}
	if recorded.JSON201 == nil {
		return fmt.Errorf("record: %s: %s", recorded.Status(), recorded.Body)
	}
	got, err := client.GetAttestationWithResponse(ctx, org, repo, recorded.JSON201.Id, &api.GetAttestationParams{})
	if err != nil {
		return err
	}
	if got.JSON200 == nil || got.JSON200.Verification == nil {
		return fmt.Errorf("the verification is missing: %s: %s", got.Status(), got.Body)
	}
	got.JSON200.Verification = nil // only reads have it
	if !reflect.DeepEqual(got.JSON200, recorded.JSON201) {
		return fmt.Errorf("recorded %+v, got %s: %s", recorded.JSON201, got.Status(), got.Body)
	}

	stored, err := client.GetAttestationEnvelopeWithResponse(ctx, org, repo, recorded.JSON201.Id,
		&api.GetAttestationEnvelopeParams{})
	if err != nil {
		return err
	}
	sent, err := json.Marshal(envelope)
	if err != nil {
		return err
	}
	if !bytes.Equal(stored.Body, sent) {
		return fmt.Errorf("sent the envelope %s, got %s", sent, stored.Body)
	}

	commit, err := client.GetCommitWithResponse(ctx, org, repo, recorded.JSON201.Commit, &api.GetCommitParams{})
	if err != nil {
		return err
	}
	if commit.JSON200 == nil || len(commit.JSON200.Attestations) != 1 ||
		commit.JSON200.Attestations[0].Id != recorded.JSON201.Id {
		return fmt.Errorf("the commit: %s: %s", commit.Status(), commit.Body)
	}
	if err := readEvents(ctx, client, recorded.JSON201); err != nil {
		return err
	}

	missing, err := client.GetAttestationWithResponse(ctx, org, "none", recorded.JSON201.Id, &api.GetAttestationParams{})
	if err != nil {
		return err
	}
	if problem := missing.ApplicationproblemJSON404; problem == nil || problem.Code != api.CodeNotFound {
		return fmt.Errorf("attestation of a missing repo: %s: %s", missing.Status(), missing.Body)
	}
	fmt.Println(recorded.JSON201.Id, recorded.JSON201.Predicate, recorded.JSON201.Result.Status, commit.JSON200.State)
	return nil
}

// readEvents checks that the history has the attestation's event. Its events have the
// same bodies as webhook deliveries.
func readEvents(ctx context.Context, client *api.ClientWithResponses, recorded *api.Attestation) error {
	json := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "application/json")
		return nil
	}

	events, err := client.ListEventsWithResponse(ctx, org, &api.ListEventsParams{}, json)
	if err != nil {
		return err
	}
	if events.JSON200 == nil {
		return fmt.Errorf("the history: %s: %s", events.Status(), events.Body)
	}

	for _, item := range events.JSON200.Data {
		event, err := item.ValueByDiscriminator()
		if err != nil {
			return err
		}
		attestation, ok := event.(api.ReceiveAttestationJSONRequestBody) // a webhook's body
		if ok && attestation.Id == recorded.Event && attestation.Identity == recorded.Identity {
			return nil
		}
	}
	return fmt.Errorf("the history lacks %s: %s", recorded.Event, events.Body)
}
