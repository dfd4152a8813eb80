package flagvalue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Require marks flags as required. They must be defined.
func Require(command *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = command.MarkFlagRequired(name)
	}
	addCheck(command, func() error {
		missing := slices.DeleteFunc(slices.Clone(flags), command.Flags().Changed)
		switch len(missing) {
		case 0:
			return nil
		case 1:
			return fmt.Errorf("%s is required", join(missing))
		}
		return fmt.Errorf("%s are required", join(missing))
	})
}

// RequireOne requires that at least one of the flags is set. They must be defined.
func RequireOne(command *cobra.Command, flags ...string) {
	command.MarkFlagsOneRequired(flags...)
	addCheck(command, func() error {
		if !slices.ContainsFunc(flags, command.Flags().Changed) {
			return fmt.Errorf("one of %s is required", join(flags))
		}
		return nil
	})
}

// Exclude requires that at most one of the flags is set. They must be defined.
func Exclude(command *cobra.Command, flags ...string) {
	command.MarkFlagsMutuallyExclusive(flags...)
	addCheck(command, func() error { return CheckExclusive(command.Flags(), flags...) })
}

// CheckExclusive returns an error if more than one of the flags is set.
func CheckExclusive(set *pflag.FlagSet, flags ...string) error {
	given := slices.DeleteFunc(slices.Clone(flags), func(name string) bool { return !set.Changed(name) })
	if len(given) > 1 {
		return fmt.Errorf("%s are mutually exclusive", join(given))
	}
	return nil
}

// RequireRev requires that the flags, if they are set, name a git revision. An empty one
// is usually a variable that a CI job did not set. The flags must be defined.
func RequireRev(command *cobra.Command, flags ...string) {
	addCheck(command, func() error {
		for _, name := range flags {
			if flag := command.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
				return fmt.Errorf("--%s is empty: name a git revision", name)
			}
		}
		return nil
	})
}

// addCheck adds a check of the flags, which runs before cobra's own: cobra's messages
// are in another style.
func addCheck(command *cobra.Command, check func() error) {
	earlier := command.PreRunE
	command.PreRunE = func(command *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(command, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// join returns flags as text, such as "--cert, --root and --key".
func join(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return "--" + names[0]
	}
	return "--" + strings.Join(names[:last], ", --") + " and --" + names[last]
}

// Error rewrites the error of a flag that could not be parsed: pflag's messages are in
// another style. Other errors are returned unchanged.
func Error(_ *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s requires a value", e.GetFlag().Name)
	}
	e, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}

	name, value, cause := e.GetFlag().Name, e.GetValue(), e.Unwrap()
	switch e.GetFlag().Value.Type() {
	case "bool":
		cause = errors.New("use true or false")
	case "duration":
		cause = errors.New("use a duration such as 90s or 5m")
	case "int":
		cause = errors.New("use a whole number")
	}
	if strings.Contains(cause.Error(), strconv.Quote(value)) {
		return fmt.Errorf("invalid --%s: %w", name, cause)
	}
	return fmt.Errorf("invalid --%s %q: %w", name, value, cause)
}

// fieldAnnotation is the annotation of a flag that holds the names of its API fields.
const fieldAnnotation = "ledgerd_field"

// NameField records that flags set an API field of another name, for error messages.
// The flags must be defined.
func NameField(command *cobra.Command, field string, flags ...string) {
	for _, flag := range flags {
		f := command.Flags().Lookup(flag)
		_ = command.Flags().SetAnnotation(flag, fieldAnnotation, append(f.Annotations[fieldAnnotation], field))
	}
}

// OfField returns the flag with which the user set an API field, or an entry of it, such
// as --expires for expires_at. If the user set no such flag, it returns the field.
func OfField(flags *pflag.FlagSet, field string) string {
	name := field
	whole, _, _ := strings.Cut(field, "[")
	flags.Visit(func(flag *pflag.Flag) {
		if strings.ReplaceAll(flag.Name, "-", "_") == whole || slices.Contains(flag.Annotations[fieldAnnotation], whole) {
			name = "--" + flag.Name
		}
	})
	return name
}
