package metrics

// Upper bounds of vLLM's histograms, without the infinite one.
var (
	bucketsIteration   = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	bucketsChoices     = []float64{1, 2, 5, 10, 20}
	bucketsPreemptions = []float64{1, 2, 3, 4, 5, 10, 20}
	bucketsFirstToken  = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	bucketsToken       = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	bucketsRequest     = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	bucketsSleep       = []float64{.01, .1, 1, 10, 30, 60, 120, 300, 600}
	bucketsHTTP        = []float64{.1, .5, 1}
	bucketsHTTPHighRes = []float64{.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
)

// bucketsTokens are the bounds of sizes of requests: 1, 2, 5, 10, … up to the longest one in tokens.
func bucketsTokens(maxModelLen uint64) []float64 {
	var bounds []float64
	for decade := uint64(1); decade <= maxModelLen && decade <= 1e9; decade *= 10 {
		for _, m := range []uint64{1, 2, 5} {
			if m*decade <= maxModelLen {
				bounds = append(bounds, float64(m*decade))
			}
		}
	}
	return bounds
}
