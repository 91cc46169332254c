package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var embedded embed.FS

// An asset is one file of the pages.
type asset struct {
	kind, tag    string
	body, zipped []byte
}

// types are the content types of assets by their extensions. The host's own table
// may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".LICENSE": "text/plain; charset=utf-8",
}

// readAssets returns the files below assets by their paths.
func readAssets() (map[string]asset, error) {
	all := map[string]asset{}
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		var zipped bytes.Buffer
		w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		all[strings.TrimPrefix(name, "assets/")] = asset{kindOf(name), `"` + hex.EncodeToString(sum[:12]) + `"`, body, zipped.Bytes()}
		return nil
	})
	return all, err
}

func kindOf(name string) string {
	if kind, ok := types[path.Ext(name)]; ok {
		return kind
	}
	return mime.TypeByExtension(path.Ext(name))
}

// serve answers with the asset. Browsers keep it, and ask each time whether it is
// still the same.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", a.tag)
	body := a.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		// Both forms have one tag, which serves to ask for news and not for ranges.
		h.Set("Content-Encoding", "gzip")
		body = a.zipped
	}
	if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
