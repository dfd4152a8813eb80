package buildinfo

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// LatestRelease is the URL of the latest release of ledgerd in GitHub's API.
const LatestRelease = "https://api.github.com/repos/ledgerd/ledgerd/releases/latest"

// maxRelease is the maximum size of the description of a release in bytes.
const maxRelease = 1 << 20

// A Release is a release of ledgerd.
type Release struct {
	Version string // such as v1.2.3
	URL     string // of its page
}

// Latest returns the release that a URL describes, in the form of GitHub's API.
func Latest(ctx context.Context, url string) (Release, error) {
	r, err := latest(ctx, url)
	if err != nil {
		return r, fmt.Errorf("look for the latest release: %w", err)
	}
	return r, nil
}

func latest(ctx context.Context, url string) (r Release, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return r, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", UserAgent())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return r, fmt.Errorf("%s answers with %s", url, response.Status)
	}

	var release struct {
		Version string `json:"tag_name"`
		URL     string `json:"html_url"`
	}
	body := http.MaxBytesReader(nil, response.Body, maxRelease)
	if err := json.UnmarshalRead(body, &release); err != nil {
		return r, fmt.Errorf("%s does not describe a release: %w", url, err)
	}
	if !semver.IsValid(release.Version) {
		return r, fmt.Errorf("%s does not describe a release: it has no tag_name such as v1.2.3", url)
	}
	return Release{release.Version, release.URL}, nil
}

// IsNewerThan reports whether a release is newer than a version, which is not so for builds that
// are not releases: they may have more.
func (r Release) IsNewerThan(version string) bool {
	return semver.IsValid(version) && !module.IsPseudoVersion(version) && semver.Build(version) == "" &&
		semver.Compare(r.Version, version) > 0
}
