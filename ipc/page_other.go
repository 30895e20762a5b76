//go:build !linux

package ipc

import (
	"errors"
	"os"
)

// NewPage is not to be had without Linux's memfd.
func NewPage() (*Page, *os.File, error) { return nil, nil, errors.ErrUnsupported }

// OpenPage is not to be had without Linux's memfd.
func OpenPage(*os.File) (*Page, error) { return nil, errors.ErrUnsupported }
