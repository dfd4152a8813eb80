package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/webhook"
)

// A receiver verifies each delivery before it trusts the body.
func ExampleVerify() {
	secret := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=" // as printed by 'ledgerd webhook add'
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "unreadable body", http.StatusBadRequest)
			return
		}
		if err := webhook.Verify(secret, r.Header, body, time.Now()); err != nil {
			http.Error(w, "invalid signature", http.StatusForbidden)
			return
		}
		fmt.Printf("%s event: %s\n", r.Header.Get(webhook.HeaderEvent), body)
	}))
	defer receiver.Close()

	// ledgerd signs like this. An attacker does not know the secret.
	body := `{"id":"evt_1","type":"state","to":"DEPLOYED"}`
	for _, key := range []string{secret, "a guess"} {
		r, err := http.NewRequest(http.MethodPost, receiver.URL, strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set(webhook.HeaderEvent, "state")
		r.Header.Set(webhook.HeaderSignature, webhook.Sign(key, time.Now(), []byte(body)))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		response.Body.Close()
		fmt.Println(response.Status)
	}
	// Output:
	// state event: {"id":"evt_1","type":"state","to":"DEPLOYED"}
	// 200 OK
	// 403 Forbidden
}
