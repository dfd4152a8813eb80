// Man writes the man pages of ledgerd and its completions for shells to a folder, for
// packages and archives:
//
//	go run ./deploy/man FOLDER
//
// Man pages have the date of SOURCE_DATE_EPOCH.
package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ledgerd/ledgerd/cmd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./deploy/man FOLDER")
		os.Exit(2)
	}
	if err := write(cmd.Root(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes the files of a command and its subcommands to the folders man and completions.
func write(root *cobra.Command, folder string) error {
	man, completions := filepath.Join(folder, "man"), filepath.Join(folder, "completions")
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Source: "ledgerd", Manual: "ledgerd"}, man); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	if err := compress(man); err != nil {
		return err
	}

	name := filepath.Join(completions, "ledgerd")
	return errors.Join(
		root.GenBashCompletionFileV2(name+".bash", true),
		root.GenZshCompletionFile(name+".zsh"),
		root.GenFishCompletionFile(name+".fish", true),
		root.GenPowerShellCompletionFileWithDesc(name+".ps1"),
	)
}

// compress replaces the files in a folder by ones that gzip has compressed, as packages have
// man pages. They have no time, so that two runs write the same bytes.
func compress(folder string) error {
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	for _, page := range pages {
		err = errors.Join(err, compressFile(page))
	}
	return err
}

func compressFile(name string) error {
	content, err := os.Open(name)
	if err != nil {
		return err
	}
	defer content.Close()
	file, err := os.Create(name + ".gz")
	if err != nil {
		return err
	}
	defer file.Close()

	w, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	if err := errors.Join(err, w.Close(), file.Close()); err != nil {
		return err
	}
	return os.Remove(name)
}
