package terminal

import (
	"fmt"
	"io"
	"strings"
)

// maxAnswer is the number of characters that are read for an answer.
const maxAnswer = 1000

// Ask asks a question on w and reads the answer, a line, from in. It reports whether the
// answer is yes. No answer is no.
func Ask(in io.Reader, w io.Writer, question string) (bool, error) {
	fmt.Fprintf(w, "%s [y/N] ", Clean(question))
	var answer []byte
	one := make([]byte, 1) // what follows the line is left to others
	for len(answer) < maxAnswer {
		n, err := in.Read(one)
		if n > 0 && one[0] == '\n' {
			break
		}
		answer = append(answer, one[:n]...)
		if err == io.EOF {
			fmt.Fprintln(w)
			break
		}
		if err != nil {
			return false, fmt.Errorf("read the answer: %w", err)
		}
	}

	switch strings.ToLower(strings.TrimSpace(string(answer))) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}
