// Package envoy finds, configures and runs a real Envoy: for the tests that drive weir through one and for the
// demo. It knows nothing of ext_proc; the traffic is the caller's.
//
// bootstrap.yaml beside this file is the one commented configuration that README, demo and tests share. Bootstrap
// derives what differs from run to run (ports, replicas, body mode) by exact replacement of its text, so that
// what is tested is what people paste, comments and all.
package envoy

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed versions
var versions string

// Oldest and Newest are the ends of the range of supported Envoy versions, such as "1.40.0", from the file versions.
var (
	Oldest = strings.Fields(versions)[0]
	Newest = strings.Fields(versions)[1]
)

// Find returns the path of an Envoy of exactly the version, or of any supported one when version is "". It asks
// get.sh, whose comment lists the places in order; the last of them is a download of some 30 MB into .tools/ of the
// checkout. The working directory must lie in the checkout. The error of a failure says how to supply an Envoy.
func Find(version string) (string, error) {
	script, err := script()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(script)
	if version != "" {
		cmd.Args = append(cmd.Args, version)
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("no Envoy: %s", bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("no Envoy: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// script returns the path of get.sh in the checkout around the working directory.
func script() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "envoy", "get.sh")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no envoy/get.sh at or above %s: run inside the checkout, or name an Envoy", start)
		}
	}
}

// versionText matches what "envoy --version" prints: COMMIT/VERSION/Clean/RELEASE/BoringSSL.
var versionText = regexp.MustCompile(`version: [^/]*/([0-9]+\.[0-9]+\.[0-9]+)`)

// Version returns the version, such as "1.40.0", that the Envoy at path says it is.
func Version(path string) (string, error) {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s --version: no version in %q", path, out)
	}
	return string(m[1]), nil
}
