package config

import (
	"fmt"
	"net/url"
	"os"
)

// urlVariable is the environment variable for the URL of a server.
const urlVariable = "LEDGERD_URL"

// A Location is where a command finds the ledger: on a server, or in a database file on
// this machine.
type Location struct {
	URL     string // empty for the database file of the settings
	URLName string // what sets the URL: a flag or LEDGERD_URL
	// Note says which of several settings is used, and why, if the user has set both a
	// server and a database. Otherwise it is empty.
	Note string
}

// Locate returns the location that is set by a flag of the given name and value, by
// LEDGERD_URL or by the settings. The flags --server and --database take precedence over
// LEDGERD_URL, and LEDGERD_URL over LEDGERD_DATABASE and the configuration file.
func (s Settings) Locate(urlFlag, value string) (Location, error) {
	variable := os.Getenv(urlVariable)
	switch {
	case value != "" && s.DatabaseSource == FromFlag:
		return Location{}, fmt.Errorf("--database and %s are mutually exclusive", urlFlag)
	case value != "":
		return Location{value, urlFlag, s.noteDatabase(urlFlag+" "+redact(value), FromFlag)}, nil
	case variable == "":
		return Location{URLName: urlFlag}, nil
	case s.DatabaseSource == FromFlag:
		return Location{
			URLName: urlFlag,
			Note:    note("--database "+s.Database.String(), urlVariable, precedence(FromFlag, FromEnvironment)),
		}, nil
	}
	return Location{variable, urlVariable, s.noteDatabase(urlVariable, FromEnvironment)}, nil
}

// noteDatabase returns the note that a server is used although the user has set a
// database, or "" if the user has not. used and source name the setting of the server.
func (s Settings) noteDatabase(used string, source Source) string {
	switch {
	case s.DatabaseSource == FromDefault:
		return ""
	case s.DatabaseSource == FromFile:
		return note(used, "the database of the configuration file", precedence(source, FromFile))
	case s.DatabaseSource == source:
		return note(used, Variable("database"),
			"a server takes precedence over a database (to use the database, pass --database)")
	}
	return note(used, Variable("database"), precedence(source, s.DatabaseSource))
}

func note(used, ignored, reason string) string {
	return fmt.Sprintf("using %s; %s is ignored, because %s", used, ignored, reason)
}

// precedence returns the rule that one source takes precedence over another.
func precedence(used, ignored Source) string {
	names := map[Source]string{
		FromFlag:        "a flag",
		FromEnvironment: "the environment",
		FromFile:        "the configuration file",
	}
	return names[used] + " takes precedence over " + names[ignored]
}

// redact returns a URL without its password.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(invalid)"
	}
	return u.Redacted()
}
