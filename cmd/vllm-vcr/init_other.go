//go:build !linux

package main

func mustReap() bool { return false }

func runInit() int { return exitFailure }
