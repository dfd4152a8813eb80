package cmd

import (
	"bytes"
	"context"
	"encoding/gob"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// A worker is a process that runs the commands of one script, one after the other, as processes of their
// own would: in the script's folder and with its variables. To start a process takes longer than most
// commands.
type worker struct {
	process  *exec.Cmd
	requests *gob.Encoder
	answers  *gob.Decoder
	names    []string // of the variables that the script may have
}

// workerKey is the key of the worker among the values of a script.
type workerKey struct{}

// A workRequest is a command for a worker.
type workRequest struct {
	Folder    string
	Variables []string // NAME=VALUE, without those that are empty
	Arguments []string // without the name of the program
}

// A workAnswer is what a command did.
type workAnswer struct {
	Status         int
	Stdout, Stderr []byte
}

// work is the main function of a worker. It runs commands until the script ends.
func work() {
	requests, answers := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var request workRequest
		err := requests.Decode(&request)
		if err == io.EOF {
			return
		}
		if err == nil {
			err = request.enter()
		}
		if err == nil {
			err = answers.Encode(request.run())
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// enter gives the process the folder and the variables of the request.
func (r *workRequest) enter() error {
	os.Clearenv()
	for _, variable := range r.Variables {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.Chdir(r.Folder)
}

func (r *workRequest) run() workAnswer {
	var stdout, stderr bytes.Buffer
	status := Main(context.Background(), r.Arguments, strings.NewReader(""), &stdout, &stderr)
	return workAnswer{Status: status, Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
}

// setWorker gives a script a worker, whose process starts with the first command.
func setWorker(env *testscript.Env) error {
	names, err := jobVariables()
	if err != nil {
		return err
	}
	for _, variable := range env.Vars {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, name)
	}
	env.Values[workerKey{}] = &worker{names: names}
	return nil
}

// setVariable matches what sets a variable in a script.
var setVariable = regexp.MustCompile(`\b([A-Z][A-Z0-9_]+)=|(?m:^(?:grab|proxy) ([A-Z0-9_]+))`)

// start starts the process. It ends with the script.
func (w *worker) start(ts *testscript.TestScript) {
	script, err := os.ReadFile(filepath.Join("testdata", "script", ts.Name()+".txtar"))
	ts.Check(err)
	for _, match := range setVariable.FindAllStringSubmatch(string(script), -1) {
		w.names = append(w.names, match[1]+match[2])
	}
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)

	program, err := os.Executable()
	ts.Check(err)
	w.process = exec.Command(program)
	w.process.Args[0] = "worker" // for testscript.Main
	w.process.Env = append(os.Environ(), "GOGC=400")
	w.process.Stderr = os.Stderr
	stdin, err := w.process.StdinPipe()
	ts.Check(err)
	stdout, err := w.process.StdoutPipe()
	ts.Check(err)
	ts.Check(w.process.Start())
	ts.Defer(func() {
		stdin.Close()
		_ = w.process.Wait()
	})
	w.requests, w.answers = gob.NewEncoder(stdin), gob.NewDecoder(stdout)
}

// run runs ledgerd, and returns its exit status.
func (w *worker) run(ts *testscript.TestScript, args []string) int {
	request := workRequest{Folder: ts.MkAbs("."), Arguments: args}
	for _, name := range w.names {
		if value := ts.Getenv(name); value != "" {
			request.Variables = append(request.Variables, name+"="+value)
		}
	}
	ts.Check(w.requests.Encode(request))
	var answer workAnswer
	ts.Check(w.answers.Decode(&answer))

	_, err := ts.Stdout().Write(answer.Stdout)
	ts.Check(err)
	_, err = ts.Stderr().Write(answer.Stderr)
	ts.Check(err)
	return answer.Status
}

// call runs a command of a script in its worker, and returns the exit status.
func call(ts *testscript.TestScript, command []string) (status int) {
	if len(command) == 0 || command[0] != "ledgerd" {
		ts.Fatalf("usage: call ledgerd [ARG]...")
	}
	w := ts.Value(workerKey{}).(*worker)
	if w.process == nil {
		w.start(ts)
	}
	return w.run(ts, command[1:])
}

func scriptCall(ts *testscript.TestScript, neg bool, args []string) {
	if status := call(ts, args); neg == (status == 0) {
		ts.Fatalf("exit status %d", status)
	}
}
