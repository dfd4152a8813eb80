package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// maxAnswer is the number of characters that are read for an answer.
const maxAnswer = 1000

// Ask asks a question on w and reads the answer, a line, from in. It reports whether the
// answer is yes. No answer is no.
func Ask(in io.Reader, w io.Writer, question string) (bool, error) {
	answer, err := readAnswer(in, w, Clean(question)+" [y/N] ")
	if err != nil {
		return false, err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// AskName asks on w for a name, and reports whether the line read from in is that name.
func AskName(in io.Reader, w io.Writer, question, name string) (bool, error) {
	answer, err := readAnswer(in, w, Clean(question)+" ")
	return err == nil && answer == name, err
}

// AskSecret asks on w for a secret, and reads it from in without showing it. ok is false if in is not a
// terminal, and nothing was asked.
func AskSecret(in io.Reader, w io.Writer, question string) (secret []byte, ok bool, err error) {
	f, isFile := in.(*os.File)
	if !isFile || !IsTerminal(f) {
		return nil, false, nil
	}
	fmt.Fprint(w, Clean(question)+" ")
	secret, err = term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(w)
	return secret, true, err
}

// readAnswer prints a question, and reads the answer without the spaces around it.
func readAnswer(in io.Reader, w io.Writer, question string) (string, error) {
	fmt.Fprint(w, question)
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
			return "", fmt.Errorf("read the answer: %w", err)
		}
	}
	return strings.TrimSpace(string(answer)), nil
}
