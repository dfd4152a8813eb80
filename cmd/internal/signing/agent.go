package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentTimeout limits a request to ssh-agent, which may ask its user to confirm a signature.
const agentTimeout = 2 * time.Minute

// An agentKey signs with a private key in ssh-agent.
type agentKey struct {
	public  crypto.PublicKey
	key     ssh.PublicKey // the same
	socket  string        // of the agent
	timeout time.Duration // of a request
}

// newAgentKey returns the key for public in the agent at socket, or an error if the agent does not have
// it.
func newAgentKey(public crypto.PublicKey, socket string, timeout time.Duration) (*agentKey, error) {
	if socket == "" {
		return nil, errors.New("it is a public key, and there is no ssh-agent with the private one: SSH_AUTH_SOCK is not " +
			"set (use the private key, or run ssh-agent and ssh-add)")
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, err
	}

	k := &agentKey{public, key, socket, timeout}
	var have []*agent.Key
	err = k.request(func(a agent.ExtendedAgent) (err error) {
		have, err = a.List()
		return err
	})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(have, func(other *agent.Key) bool { return bytes.Equal(other.Blob, key.Marshal()) }) {
		return nil, fmt.Errorf("it is a public key, and the private one is not among the %d keys in ssh-agent (add it with "+
			"ssh-add)", len(have))
	}
	return k, nil
}

// request calls send with a connection to the agent, which is closed afterwards.
func (k *agentKey) request(send func(agent.ExtendedAgent) error) error {
	deadline := time.Now().Add(k.timeout)
	conn, err := net.DialTimeout("unix", k.socket, k.timeout)
	if err != nil {
		return fmt.Errorf("ssh-agent (SSH_AUTH_SOCK): %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("ssh-agent: %w", err)
	}

	err = send(agent.NewClient(conn))
	switch {
	case err == nil:
		return nil
	case !time.Now().Before(deadline): // the client's error does not wrap that of the connection
		return fmt.Errorf("ssh-agent did not answer in %g minutes", k.timeout.Minutes())
	}
	return fmt.Errorf("ssh-agent: %w", err)
}

// Public implements crypto.Signer.
func (k *agentKey) Public() crypto.PublicKey { return k.public }

// Sign implements crypto.Signer. It fails, because the agent hashes what it signs.
func (k *agentKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("ssh-agent does not sign digests")
}

// SignMessage implements crypto.MessageSigner. The agent chooses the hash by the type of the key: for
// ECDSA the one that matches the curve, and SHA-256 for RSA, as identity.Sign does.
func (k *agentKey) SignMessage(_ io.Reader, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	var flags agent.SignatureFlags
	if _, ok := k.public.(*rsa.PublicKey); ok { // some agents refuse it for other keys
		flags = agent.SignatureFlagRsaSha256
	}
	var signed *ssh.Signature
	err := k.request(func(a agent.ExtendedAgent) (err error) {
		if signed, err = a.SignWithFlags(k.key, message, flags); err != nil {
			return err
		}
		return k.key.Verify(message, signed)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot sign: %w", err)
	}
	return k.decode(signed)
}

// decode returns a valid signature by the key in the form that verifiers of DSSE read.
func (k *agentKey) decode(signed *ssh.Signature) ([]byte, error) {
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		var pair struct{ R, S *big.Int }
		if err := ssh.Unmarshal(signed.Blob, &pair); err != nil {
			return nil, fmt.Errorf("ssh-agent: %w", err)
		}
		return asn1.Marshal(pair)
	case *rsa.PublicKey:
		if signed.Format != ssh.KeyAlgoRSASHA256 {
			return nil, fmt.Errorf("ssh-agent signed with %s instead of %s", signed.Format, ssh.KeyAlgoRSASHA256)
		}
		// Some agents leave out leading zeros.
		return new(big.Int).SetBytes(signed.Blob).FillBytes(make([]byte, public.Size())), nil
	}
	return signed.Blob, nil
}
