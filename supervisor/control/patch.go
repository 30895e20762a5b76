package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"vllm-vcr/config"
)

// valueLimit is the longest value of one key, in bytes of JSON. Only a list of words can come near it.
const valueLimit = 64 << 10

// rangeOrder are the keys whose ranges are judged first, in this order; the others follow as they were written.
var rangeOrder = []string{"failure_injection_rate", "time_factor_under_load", "failure_types"}

// readPatch returns the patch that a call carries. Whatever it returns without an error can be applied.
func readPatch(ctx *fasthttp.RequestCtx) (config.Patch, error) {
	body, err := jsonBody(ctx)
	if err != nil {
		return nil, err
	}
	return decodePatch(body)
}

// decodePatch reads an object whose keys are settings that can be changed. Syntax is 400, then shape 422, then ranges
// 400, all of them at once. null leaves a setting as it is.
func decodePatch(body []byte) (config.Patch, error) {
	var patch config.Patch
	var scratch config.Config
	err := walkObject(body, func(key string, raw []byte) error {
		option, ok := config.LiveOption(key)
		if !ok {
			return unknownSetting(key)
		}
		if string(raw) == "null" {
			return nil
		}
		if err := option.Value(&scratch).SetJSON(raw); err != nil {
			return faultf(fasthttp.StatusUnprocessableEntity, "%v", settingFault(key, raw, err))
		}
		patch = append(patch, config.Setting{Key: key, Raw: string(raw)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return patch, checkRanges(patch, &scratch)
}

// checkRanges judges the settings of patch, whose values are in scratch.
func checkRanges(patch config.Patch, scratch *config.Config) error {
	ordered := slices.Clone(patch)
	slices.SortStableFunc(ordered, func(a, b config.Setting) int { return rank(a.Key) - rank(b.Key) })
	var faults []string
	for _, s := range ordered {
		option, _ := config.LiveOption(s.Key) // found before
		err := option.Value(scratch).Check()
		if len(s.Raw) > valueLimit {
			err = errors.Join(err, fmt.Errorf("%d bytes, want at most %d", len(s.Raw), valueLimit))
		}
		if err != nil {
			faults = append(faults, settingFault(s.Key, []byte(s.Raw), err).Error())
		}
	}
	if len(faults) > 0 {
		return faultf(fasthttp.StatusBadRequest, "%s", strings.Join(faults, "; "))
	}
	return nil
}

// rank is the place of key in rangeOrder, behind it for all others.
func rank(key string) int {
	if i := slices.Index(rangeOrder, key); i >= 0 {
		return i
	}
	return len(rangeOrder)
}

func settingFault(key string, raw []byte, err error) error {
	return fmt.Errorf("%s: %s: %s", key, shorten(string(raw)), shorten(err.Error()))
}

// unknownSetting says what a key might have been meant to be: a setting of the start, or the one that reads most like it.
func unknownSetting(key string) error {
	for _, option := range config.Options() {
		if option.Key() == key {
			return faultf(fasthttp.StatusUnprocessableEntity, "%s: can only be set at start, with --%s", key, option.Flag)
		}
	}
	return unknownKey(key, config.LiveKeys())
}

func unknownKey(key string, known []string) error {
	return faultf(fasthttp.StatusUnprocessableEntity, "%q: unknown key, the nearest one is %q", shorten(key), nearest(key, known))
}
