package openai

// LoadLoRARequest is the body of POST /v1/load_lora_adapter.
type LoadLoRARequest struct {
	Name     string `json:"lora_name"`
	Path     string `json:"lora_path"`
	InPlace  bool   `json:"load_inplace"`
	Is3DMoE  bool   `json:"is_3d_lora_weight"`
	BaseName string `json:"base_model_name"`
}

// maxLoRAText bounds an adapter's name and path, in bytes.
const maxLoRAText = 4096

// Check asks for a name and a path. The error is an [*Error].
func (r *LoadLoRARequest) Check() error {
	if r.Name == "" || r.Path == "" {
		return &Error{"Both 'lora_name' and 'lora_path' must be given.", "InvalidUserInput", "", 400}
	}
	if len(r.Name) > maxLoRAText || len(r.Path) > maxLoRAText {
		return &Error{"'lora_name' and 'lora_path' may have at most 4096 bytes.", "InvalidUserInput", "", 400}
	}
	return nil
}

// UnloadLoRARequest is the body of POST /v1/unload_lora_adapter.
type UnloadLoRARequest struct {
	Name string `json:"lora_name"`
	ID   int64  `json:"lora_int_id"`
}

// Check asks for a name. The error is an [*Error].
func (r *UnloadLoRARequest) Check() error {
	if r.Name == "" {
		return &Error{"'lora_name' must be given to unload an adapter.", "InvalidUserInput", "", 400}
	}
	return nil
}
