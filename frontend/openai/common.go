package openai

// Common are the fields of every route that generates which are about neither sampling nor sending.
type Common struct {
	Model          string `json:"model"` // "" = the server's
	User           string `json:"user"`
	Priority       int64  `json:"priority"` // lower runs first
	RequestID      string `json:"request_id"`
	CacheSalt      string `json:"cache_salt"`
	SessionID      string `json:"session_id"`
	ReturnTokenIDs bool   `json:"return_token_ids"`
	TokensAsIDs    bool   `json:"return_tokens_as_token_ids"` // logprobs name tokens as token_id:5
	AddSpecials    *bool  `json:"add_special_tokens"`
}

// maxID bounds what a client may name its request, in bytes.
const maxID = 256

func (c *Common) check() error {
	if len(c.RequestID) > maxID {
		return BadRequest("request_id", "request_id has %d bytes, want at most %d.", len(c.RequestID), maxID)
	}
	return nil
}
