package attestation

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// parseProvenance parses SLSA provenance v1: https://slsa.dev/spec/v1.1/provenance.
func parseProvenance(predicate []byte) (body, error) {
	var p struct {
		BuildDefinition struct {
			BuildType            string         `json:"buildType"`
			ExternalParameters   jsontext.Value `json:"externalParameters"`
			ResolvedDependencies []resourceJSON `json:"resolvedDependencies"`
			Other                otherMembers   `json:",embed"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder  actorJSON `json:"builder"`
			Metadata struct {
				StartedOn  moment       `json:"startedOn"`
				FinishedOn moment       `json:"finishedOn"`
				Other      otherMembers `json:",embed"`
			} `json:"metadata"`
			Other otherMembers `json:",embed"`
		} `json:"runDetails"`
		Other otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	times := p.RunDetails.Metadata
	b := builtBy(p.RunDetails.Builder, times.StartedOn, times.FinishedOn)
	b.sources = resources{"predicate.buildDefinition.resolvedDependencies", p.BuildDefinition.ResolvedDependencies}
	if err := b.sources.checkDigests(); err != nil {
		return body{}, err
	}
	if isTekton(p.BuildDefinition.BuildType, p.BuildDefinition.ExternalParameters) {
		b.separateConfig(func(r *resourceJSON) bool { return slices.Contains(tektonConfig, r.Name) })
	} else {
		b.source = sourceOf(p.BuildDefinition.ExternalParameters)
	}
	return b, nil
}

// parseProvenanceV02 parses SLSA provenance v0.2: https://slsa.dev/provenance/v0.2.
func parseProvenanceV02(predicate []byte) (body, error) {
	var p struct {
		Builder    actorJSON `json:"builder"`
		BuildType  string    `json:"buildType"`
		Invocation struct {
			ConfigSource struct {
				URI    string            `json:"uri"`
				Digest map[string]string `json:"digest"`
				Other  otherMembers      `json:",embed"`
			} `json:"configSource"`
			Other otherMembers `json:",embed"`
		} `json:"invocation"`
		Materials []resourceJSON `json:"materials"`
		Metadata  struct {
			StartedOn  moment       `json:"buildStartedOn"`
			FinishedOn moment       `json:"buildFinishedOn"`
			Other      otherMembers `json:",embed"`
		} `json:"metadata"`
		Other otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	b := builtBy(p.Builder, p.Metadata.StartedOn, p.Metadata.FinishedOn)
	b.sources = resources{"predicate.materials", p.Materials}
	if err := b.sources.checkDigests(); err != nil {
		return body{}, err
	}
	config := p.Invocation.ConfigSource
	if isTekton(p.BuildType, nil) {
		b.separateConfig(func(r *resourceJSON) bool { return r.URI == config.URI && maps.Equal(r.Digest, config.Digest) })
	} else {
		b.source = config.URI
	}
	return b, nil
}

// tektonConfig are the names of the dependencies by which Tekton Chains names the definitions that ran. Their
// repository need not be the one that was built: https://tekton.dev/docs/chains/slsa-provenance.
var tektonConfig = []string{"pipeline", "task", "pipelineTask"}

// isTekton reports whether Tekton ran a build, by its type or by its parameters, as on Google Cloud Build.
func isTekton(buildType string, parameters jsontext.Value) bool {
	_, rest, ok := strings.Cut(buildType, "://")
	if !ok {
		rest = buildType
	}
	if strings.HasPrefix(rest, "tekton.dev/") {
		return true
	}
	var p struct {
		RunSpec jsontext.Value `json:"runSpec"`
	}
	return isObject(parameters) && ledger.DecodeOpen(parameters, &p) == nil && p.RunSpec != nil
}

// separateConfig moves the dependencies that say what to run from the sources.
func (b *body) separateConfig(isConfig func(*resourceJSON) bool) {
	b.config.path = b.sources.path
	b.sources.list = slices.DeleteFunc(b.sources.list, func(r resourceJSON) bool {
		if !isConfig(&r) {
			return false
		}
		b.config.list = append(b.config.list, r)
		return true
	})
}

func builtBy(builder actorJSON, from, to moment) body {
	return body{
		predicate:  outcomeName("build", uriLabel(builder.ID)),
		result:     ledger.Result{Status: ledger.Pass, DurationMS: durationMS(from, to)},
		finishedAt: to.time(),
	}
}

// sourceOf returns the URI of the repo that was built, from the parameters of the build
// types in use: https://slsa.dev/spec/v1.1/provenance#externalparameters. It is empty if
// none of them has it.
func sourceOf(parameters jsontext.Value) string {
	var p struct {
		Workflow struct { // GitHub Actions
			Repository string `json:"repository"`
		} `json:"workflow"`
		Source            sourceJSON `json:"source"` // the generic generators of slsa-framework
		SourceToBuild     sourceJSON `json:"sourceToBuild"`
		BuildConfigSource sourceJSON `json:"buildConfigSource"` // Google Cloud Build
		ConfigSource      sourceJSON `json:"configSource"`
		Repository        string     `json:"repository"`
	}
	if !isObject(parameters) || ledger.DecodeOpen(parameters, &p) != nil {
		return "" // other parameters, which the builder is free to choose
	}

	for _, uri := range []string{p.Workflow.Repository, string(p.Source), string(p.SourceToBuild),
		string(p.BuildConfigSource), string(p.ConfigSource), p.Repository} {
		if uri != "" {
			return uri
		}
	}
	return ""
}

// A sourceJSON is the URI of a source: a text, or the member uri or repository of an
// object.
type sourceJSON string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *sourceJSON) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	var uri string
	if ledger.DecodeOpen(value, &uri) == nil {
		*s = sourceJSON(uri)
		return nil
	}
	var object struct {
		URI        string `json:"uri"`
		Repository string `json:"repository"`
	}
	if ledger.DecodeOpen(value, &object) == nil {
		*s = sourceJSON(max(object.URI, object.Repository))
	}
	return nil
}
