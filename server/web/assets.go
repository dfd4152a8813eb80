package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"path"
	"strings"
)

//go:embed static
var static embed.FS

// assets are the static files of the pages. Their URLs contain a hash of the
// content, so browsers can cache them forever.
type assets struct {
	paths map[string]string // URL path by plain name
	files map[string]asset  // by hashed name
}

// An asset is a static file.
type asset struct {
	body      []byte
	mediaType string
}

// loadAssets returns the static files, with URLs below a base path.
func loadAssets(base string) (*assets, error) {
	entries, err := static.ReadDir("static")
	if err != nil {
		return nil, fmt.Errorf("list static files: %w", err)
	}
	a := &assets{make(map[string]string), make(map[string]asset)}
	for _, entry := range entries {
		body, err := static.ReadFile("static/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read static file: %w", err)
		}
		sum := sha256.Sum256(body)
		ext := path.Ext(entry.Name())
		hashed := strings.TrimSuffix(entry.Name(), ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		a.paths[entry.Name()] = base + "/static/" + hashed
		a.files[hashed] = asset{body, mime.TypeByExtension(ext)}
	}
	return a, nil
}

// path returns the URL path of the file with the plain name.
func (a *assets) path(name string) (string, error) {
	if p, ok := a.paths[name]; ok {
		return p, nil
	}
	return "", fmt.Errorf("static file %s not found", name)
}
