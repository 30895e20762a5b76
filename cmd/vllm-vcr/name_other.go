//go:build !linux

package main

func nameProcess(string) {}
