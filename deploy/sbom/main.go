// Command sbom writes the software bill of materials of a Go binary, as CycloneDX JSON, to stdout: what it is made of, by the
// binary's own build information, and the hash of the binary that it is the bill of. The same binary gives the same bytes.
//
//	go run ./deploy/sbom bin/vllm-vcr VERSION
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments, want BINARY VERSION", len(args))
	}
	bom, err := read(args[0], args[1])
	if err != nil {
		return err
	}
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
}

// read makes the bill of a binary, which is of this version.
func read(file, version string) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	self := component(cdx.ComponentTypeApplication, info.Main.Path, version)
	self.Name = path.Base(info.Main.Path)
	self.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	self.Properties = settings(info)
	std := component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))
	parts := []cdx.Component{std}
	for _, m := range info.Deps {
		part, err := module(m)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &self}
	bom.Components = &parts
	bom.Dependencies = dependencies(self.BOMRef, parts)
	return bom, nil
}

// dependencies tell only what the build information does: that all is in it.
func dependencies(self string, parts []cdx.Component) *[]cdx.Dependency {
	refs := make([]string, len(parts))
	for i := range parts {
		refs[i] = parts[i].BOMRef
	}
	return &[]cdx.Dependency{{Ref: self, Dependencies: &refs}}
}

func component(kind cdx.ComponentType, name, version string) cdx.Component {
	purl := "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{Type: kind, BOMRef: purl, Name: name, Version: version, PackageURL: purl}
}

// module is one that is linked in. Its hash is the one that go.sum has.
func module(m *debug.Module) (cdx.Component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return c, fmt.Errorf("module %s: sum %q, want h1: and a hash", m.Path, m.Sum)
	}
	c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	return c, nil
}

// settings are how it was built.
func settings(info *debug.BuildInfo) *[]cdx.Property {
	var list []cdx.Property
	for _, s := range info.Settings {
		list = append(list, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	return &list
}
