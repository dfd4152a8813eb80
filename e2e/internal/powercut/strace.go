package powercut

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Record changes a command that has not been started, so that strace writes its system
// calls to the file trace. The process is still the command itself, not strace.
func Record(c *exec.Cmd, trace string) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return err
	}
	args := []string{
		"strace", "-D", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "100000000", "-o", trace, "-e", "trace=" +
			"open,openat,creat,write,pwrite64,writev,pwritev,pwritev2,mmap,truncate,ftruncate,fallocate," +
			"fsync,fdatasync,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat",
		"--", c.Path,
	}
	c.Args = append(args, c.Args[1:]...)
	c.Path = strace
	return nil
}

// maxWait is the time that strace may take to write the end of a trace.
const maxWait = time.Minute

// maxTail is the maximum size of the lines about the ends of threads, in bytes.
const maxTail = 16 << 10

// Wait waits until the trace of a process that has ended is complete.
func Wait(trace string, pid int) error {
	end := regexp.MustCompile(fmt.Sprintf(`(?m)^%d +\+\+\+ (exited|killed).*\n`, pid))
	for begin := time.Now(); time.Since(begin) < maxWait; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(trace)
		if err != nil {
			return err
		}
		if end.Match(text[max(0, len(text)-maxTail):]) {
			return nil
		}
	}
	return fmt.Errorf("trace %s has no end after %s", trace, maxWait)
}

// never is the line of what does not happen in a trace.
const never = math.MaxInt

// A call is a system call. It begins and ends at lines of the trace. A call that was not
// interrupted by another thread has a single line.
type call struct {
	began, ended int // ended may be never
	name         string
	args         []string
	result       int64
}

// readCalls reads the output of strace and calls fn for each call that did not fail, in
// the order in which they end. It returns the number of lines.
func readCalls(r io.Reader, fn func(call) error) (lines int, err error) {
	type begun struct {
		line int
		text string
	}
	unfinished := make(map[string]begun) // by thread

	in := bufio.NewReader(r)
	for ; ; lines++ {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		thread, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		text = strings.TrimLeft(text, " ")

		began := lines
		if before, ok := strings.CutSuffix(text, "<unfinished ...>"); ok {
			unfinished[thread] = begun{lines, strings.TrimRight(before, " ")}
			continue
		}
		if strings.HasPrefix(text, "<... ") {
			_, rest, _ := strings.Cut(text, " resumed>")
			began, text = unfinished[thread].line, unfinished[thread].text+rest
			delete(unfinished, thread)
		}
		if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "+++") {
			continue // a signal or an exit
		}

		c, err := parseCall(text)
		if err != nil {
			return 0, fmt.Errorf("line %d of the trace: %w", lines+1, err)
		}
		c.began, c.ended = began, lines
		if c.result >= 0 {
			if err := fn(c); err != nil {
				return 0, fmt.Errorf("line %d of the trace: %w", lines+1, err)
			}
		}
	}

	for _, b := range unfinished {
		c, err := parseCall(b.text + ") = ?")
		if err != nil {
			return 0, fmt.Errorf("line %d of the trace: %w", b.line+1, err)
		}
		c.began, c.ended = b.line, never
		if err := fn(c); err != nil {
			return 0, fmt.Errorf("line %d of the trace: %w", b.line+1, err)
		}
	}
	return lines, nil
}

// parseCall parses a line such as "fsync(8<\x2f\x61>) = 0". The option -xx of strace
// guarantees that strings have no commas.
func parseCall(text string) (call, error) {
	name, rest, ok := strings.Cut(text, "(")
	equals := strings.LastIndex(rest, " = ")
	if !ok || equals < 0 {
		return call{}, fmt.Errorf("not a system call: %.100q", text)
	}
	args := strings.TrimSuffix(strings.TrimRight(rest[:equals], " "), ")")
	c := call{name: name, args: strings.Split(args, ", ")}

	result, _, _ := strings.Cut(rest[equals+len(" = "):], " ")
	result, _, _ = strings.Cut(result, "<")
	if result == "?" { // the process ended during the call
		return c, nil
	}
	var err error
	c.result, err = strconv.ParseInt(result, 0, 64)
	if err != nil && strings.HasPrefix(result, "0x") { // an address
		c.result, err = 0, nil
	}
	return c, err
}

// text returns an argument that is a string.
func (c call) text(i int) ([]byte, error) {
	if i >= len(c.args) || len(c.args[i]) < 2 || c.args[i][0] != '"' || !strings.HasSuffix(c.args[i], `"`) {
		return nil, fmt.Errorf("%s: argument %d is not a complete string", c.name, i)
	}
	return unescape(c.args[i][1 : len(c.args[i])-1])
}

// number returns an argument that is a number.
func (c call) number(i int) (int64, error) {
	if i >= len(c.args) {
		return 0, fmt.Errorf("%s: no argument %d", c.name, i)
	}
	return strconv.ParseInt(c.args[i], 0, 64)
}

// descriptor returns an argument such as "8</folder/file>": the number of the descriptor
// and the path of its file. The path is empty if the file was deleted.
func (c call) descriptor(i int) (fd, path string, err error) {
	if i >= len(c.args) {
		return "", "", fmt.Errorf("%s: no argument %d", c.name, i)
	}
	fd, rest, _ := strings.Cut(c.args[i], "<")
	escaped, end, _ := strings.Cut(rest, ">")
	if end != "" {
		return fd, "", nil
	}
	text, err := unescape(escaped)
	return fd, string(text), err
}

// unescape decodes a string such as \x2f\x61.
func unescape(s string) ([]byte, error) {
	if len(s)%4 != 0 {
		return nil, fmt.Errorf("incomplete string %.40q", s)
	}
	return hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
}
