package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A CI job signs the result of its tests and records it.
func ExampleNew() {
	server := startExample()
	defer server.close()

	c, err := client.New(server.url, client.Options{Token: server.token})
	if err != nil {
		log.Fatal(err)
	}
	statement, err := attestation.NewStatement("acme/api", "0123456789abcdef0123456789abcdef01234567",
		attestation.ResultPredicate{
			Predicate: "test:go",
			Result:    ledger.Result{Status: ledger.Pass, DurationMS: 12_000},
			Repo:      "acme/api",
			StartedOn: ledger.TimeOf(time.Now().Add(-12 * time.Second)),
		})
	if err != nil {
		log.Fatal(err)
	}
	envelope, err := attestation.SignDSSE(server.key, statement)
	if err != nil {
		log.Fatal(err)
	}
	record, created, err := c.Record(context.Background(), "acme", "api", envelope)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Predicate, record.Result.Status, "by", record.Identity)
	fmt.Println("new:", created)
	// Output:
	// test:go pass by cn=ci,ou=build,o=acme
	// new: true
}

// Follow yields events as they happen, and reconnects automatically. It ends with
// the loop or the context.
func ExampleClient_Follow() {
	server := startExample()
	defer server.close()
	server.record("test:go")

	c, err := client.New(server.url, client.Options{Token: server.token})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for event, err := range c.Follow(ctx, "acme", client.FollowOptions{After: client.Earliest}) {
		if err != nil {
			log.Fatal(err)
		}
		switch {
		case event.Attestation != nil:
			fmt.Println("attestation:", event.Attestation.Predicate, event.Attestation.Result.Status)
		case event.State != nil:
			fmt.Println("state:", event.State.From, "to", event.State.To)
		}
		if event.State != nil && event.State.To == ledger.Attested {
			break
		}
	}
	// Output:
	// attestation: test:go pass
	// state: DRAFT to VALIDATING
	// state: VALIDATING to ATTESTED
}
