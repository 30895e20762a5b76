package enginecore

import "github.com/tinylib/msgp/msgp"

// LoRARequest names an adapter, inside an ADD or as the argument of add_lora.
//
//	up to 0.32  [name, id, path, base_model, tensorizer_config, load_inplace, is_3d_weight]
//	from 0.33   [name, id, path, base_model, load_inplace, is_3d_weight]
type LoRARequest struct {
	Name             string
	ID               uint64 // 1 and up
	Path             string
	BaseModel        string   // "" = none
	TensorizerConfig msgp.Raw // opaque map, gone from 0.33 on; nil = none
	LoadInplace      bool
	Is3DWeight       bool
}

var loraNames = []string{"lora_name", "lora_int_id", "lora_path", "base_model_name"}

// lora reads an adapter of any line, which the type of element 4 tells apart: a flag, or what 0.33 removed. Nil gives nil.
func (d *decoder) lora() *LoRARequest {
	if d.null() {
		return nil
	}
	l := &LoRARequest{}
	shift := 0
	n := d.array(loraNames, func(i int) {
		if i == 4 && msgp.NextType(d.b) != msgp.BoolType {
			l.TensorizerConfig = d.raw()
			shift = 1
			return
		}
		d.loraElement(l, i, i-shift)
	})
	if d.err == nil && n < 2 {
		d.fail("%d elements, want at least 2", n)
	}
	if d.err != nil {
		return nil
	}
	return l
}

// loraElement reads element i, which the layout of 0.33 has at position modern.
func (d *decoder) loraElement(l *LoRARequest, i, modern int) {
	switch {
	case i == 0:
		l.Name = d.string()
	case i == 1:
		l.ID = d.uint()
	case i == 2:
		l.Path = d.string()
	case i == 3:
		l.BaseModel = d.string()
	case modern == 4:
		l.LoadInplace = d.bool()
	case modern == 5:
		l.Is3DWeight = d.bool()
	default: // elements of later lines
		d.skip()
	}
}

// appendLoRA writes an adapter as line v has it, untrimmed; nil is nil.
func appendLoRA(b []byte, v Version, l *LoRARequest) []byte {
	if l == nil {
		return msgp.AppendNil(b)
	}
	modern := v.AtLeast(33)
	if modern {
		b = msgp.AppendArrayHeader(b, 6)
	} else {
		b = msgp.AppendArrayHeader(b, 7)
	}
	b = msgp.AppendString(b, l.Name)
	b = msgp.AppendUint64(b, l.ID)
	b = msgp.AppendString(b, l.Path)
	b = appendText(b, l.BaseModel)
	if !modern {
		b = appendRaw(b, l.TensorizerConfig)
	}
	b = msgp.AppendBool(b, l.LoadInplace)
	return msgp.AppendBool(b, l.Is3DWeight)
}
