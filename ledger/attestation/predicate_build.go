package attestation

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// parseProvenance parses SLSA provenance v1: https://slsa.dev/spec/v1.1/provenance.
func parseProvenance(predicate []byte) (body, error) {
	var p struct {
		BuildDefinition struct {
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
	b.source = sourceOf(p.BuildDefinition.ExternalParameters)
	return b, b.sources.checkDigests()
}

// parseProvenanceV02 parses SLSA provenance v0.2: https://slsa.dev/provenance/v0.2.
func parseProvenanceV02(predicate []byte) (body, error) {
	var p struct {
		Builder    actorJSON `json:"builder"`
		Invocation struct {
			ConfigSource struct {
				URI   string       `json:"uri"`
				Other otherMembers `json:",embed"`
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
	b.source = p.Invocation.ConfigSource.URI
	return b, b.sources.checkDigests()
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
