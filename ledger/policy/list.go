package policy

import (
	"fmt"
	"strings"
)

// joinFirst joins the first three items and counts the others.
func joinFirst(items []string, joint string) string {
	const few = 3
	if len(items) <= few {
		return strings.Join(items, joint)
	}
	return fmt.Sprintf("%s%s%d more", strings.Join(items[:few], joint), joint, len(items)-few)
}
