package ledger

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A State is how far a commit has come. States are ordered from lowest to highest.
type State uint8

// The five states.
const (
	Draft      State = iota // registered, no attestations
	Validating              // at least one attestation
	Attested                // the requirements of ATTESTED are met
	Promotable              // the requirements of PROMOTABLE are met too
	Deployed                // the requirements of DEPLOYED are met too, by evidence recorded while PROMOTABLE
)

// States lists all states from the lowest to the highest.
func States() []State { return []State{Draft, Validating, Attested, Promotable, Deployed} }

var stateNames = [...]string{"DRAFT", "VALIDATING", "ATTESTED", "PROMOTABLE", "DEPLOYED"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// ParseState parses the name of a state.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a state (use DRAFT, VALIDATING, ATTESTED, PROMOTABLE or DEPLOYED)", text.Clip(name))
}

// AppendText implements encoding.TextAppender.
func (s State) AppendText(b []byte) ([]byte, error) { return append(b, s.String()...), nil }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *State) UnmarshalText(b []byte) error {
	parsed, err := ParseState(string(b))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// A Cause is the cause of a transition.
type Cause struct {
	Type CauseType `json:"type"`
	// ID identifies the attestation, policy version, commit, event or identity. For an
	// expiry, it is the attestation that expired; for an upgrade, the version of the rules;
	// for an exception or for carried evidence, its attestation.
	ID string `json:"id"`
}

// A CauseType is the type of a Cause.
type CauseType string

// The cause types.
const (
	CauseAttestation CauseType = "attestation" // an attestation was recorded
	CausePolicy      CauseType = "policy"      // the repo's contract changed
	CauseExpiry      CauseType = "expiry"      // evidence reached its max_age
	CauseRadar       CauseType = "radar"       // an overlap opened or closed
	CauseCommit      CauseType = "commit"      // a registration changed which requirements apply
	CauseIdentity    CauseType = "identity"    // two people turned out to be one, or an identity is distrusted
	CauseUpgrade     CauseType = "upgrade"     // a new release reads statements differently
	CauseException   CauseType = "exception"   // an exception was granted, or ended
	CauseCarry       CauseType = "carry"       // evidence of another commit, which carries, changed
)
