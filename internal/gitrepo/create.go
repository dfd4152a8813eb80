package gitrepo

import (
	"bufio"
	"context"
	"io"
	"os"
)

// Create creates the repository in a new folder, with the branch that HEAD names. It has no
// commits.
func (g Repo) Create(ctx context.Context, branch string) error {
	if err := os.Mkdir(g.Dir, 0o755); err != nil {
		return err
	}
	if _, err := g.Read(ctx, "init", "--quiet", "--template="); err != nil {
		return err
	}
	_, err := g.Read(ctx, "symbolic-ref", "HEAD", localBranch+branch)
	return err
}

// FastImport runs git fast-import on what write writes, with additional options.
func (g Repo) FastImport(ctx context.Context, write func(io.Writer), options ...string) error {
	command := g.command(ctx, append([]string{"fast-import", "--quiet"}, options...)...)
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return failure(command, "fast-import", err)
	}
	w := bufio.NewWriter(in)
	write(w)
	_ = w.Flush() // if it fails, so does git
	in.Close()
	if err := command.Wait(); err != nil {
		return failure(command, "fast-import", err)
	}
	return nil
}
