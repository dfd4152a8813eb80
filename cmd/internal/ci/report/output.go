package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
)

// An Output is where reports go.
type Output struct {
	// Provider is the CI system, empty outside its jobs.
	Provider ci.Provider
	// Summary is the file that the summary is appended to. If empty, it is the one that
	// the CI system asks for.
	Summary string
	// Log is read by the CI system, which obeys commands in it.
	Log io.Writer
	// Getenv returns the variables of the job.
	Getenv func(string) string
}

// Write writes the summary and the annotations as far as the CI system has a place for
// them. Outside CI it only writes to the file Summary, if there is one.
func (o Output) Write(r Report) error {
	for _, a := range r.Annotations[:min(len(r.Annotations), maxAnnotations)] {
		if line := annotationLine(o.Provider, a); line != "" {
			fmt.Fprintln(o.Log, line)
		}
	}

	name := o.Summary
	switch o.Provider {
	case ci.GitHub, ci.Gitea, ci.Forgejo:
		if name == "" {
			name = o.Getenv("GITHUB_STEP_SUMMARY")
		}
	case ci.Azure:
		if folder := o.Getenv("AGENT_TEMPDIRECTORY"); name == "" && folder != "" {
			return o.uploadSummary(folder, r)
		}
	}
	if name == "" {
		return nil
	}
	return appendSummary(name, r)
}

func appendSummary(name string, r Report) (err error) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	text := Markdown(r)
	if info, err := file.Stat(); err == nil && info.Size()+int64(len(text)) > maxSummary {
		return fmt.Errorf("writing the summary: %s is full", name)
	}
	_, err = file.WriteString(text)
	return err
}

// uploadSummary writes the summary to a file that Azure Pipelines reads after the step.
func (o Output) uploadSummary(folder string, r Report) error {
	file, err := os.CreateTemp(folder, "ledgerd-*.md")
	if err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	name, err := filepath.Abs(file.Name())
	if _, writeErr := file.WriteString(Markdown(r)); err == nil {
		err = writeErr
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	fmt.Fprintln(o.Log, "##vso[task.uploadsummary]"+escapeAzure.Replace(name))
	return nil
}

// annotationLine returns the command that creates an annotation, if the provider has one.
func annotationLine(p ci.Provider, a Annotation) string {
	title, file, message := clean(a.Title, maxCell), clean(a.File, maxCell), clean(a.Message, maxMessage)
	switch p {
	case ci.GitHub, ci.Gitea, ci.Forgejo:
		line := "::" + string(a.Level) + " title=" + escapeProperty.Replace(title)
		if file != "" {
			line += ",file=" + escapeProperty.Replace(file)
		}
		return line + "::" + escapeGitHub.Replace(message)
	case ci.Azure:
		level := a.Level
		if level == Notice { // has none
			return ""
		}
		line := "##vso[task.logissue type=" + string(level)
		if file != "" {
			line += ";sourcepath=" + escapeAzure.Replace(file)
		}
		return line + "]" + escapeAzure.Replace(title+": "+message)
	}
	return ""
}

// The escapes of workflow commands, as GitHub's toolkit and Azure's task library have them.
var (
	escapeGitHub   = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	escapeAzure    = strings.NewReplacer("%", "%AZP25", "\r", "%0D", "\n", "%0A", ";", "%3B", "]", "%5D")
)
