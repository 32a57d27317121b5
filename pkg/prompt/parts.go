package prompt

// content scans a message's content: an array into parts, an object as its only one; anything else is returned as it stands.
func (p *Parser) content() span {
	s := &p.scan
	p.parts = p.parts[:0]
	switch s.peek() {
	case '[':
	case '{':
		p.part()
		return span{}
	default:
		return s.open()
	}
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() == '{' && !p.over {
			p.part()
		} else {
			p.add(&p.parts, tagText, s.open())
		}
	}
	return span{}
}

// joinContent records the parts of a content. One empty text is rendered as none is.
func (p *Parser) joinContent() {
	if len(p.parts) == 1 && p.parts[0].tag == tagText && p.emptyText(p.parts[0].at) {
		return
	}
	p.join(p.parts)
}

// What a part's type says that it is.
const (
	asText uint16 = 1 << iota
	asRefusal
	asThinking
	asImage
	asVideo
	asAudio
	asFile
	asReference
	asEmbeds

	asUnknown = asText | asRefusal | asThinking | asImage | asVideo | asAudio | asFile // its members tell
)

// partTypes are the types of parts: those that vLLM knows, and those of OpenAI's Responses and files.
var partTypes = [...]struct {
	name string
	as   uint16
}{
	{"text", asText}, {"input_text", asText}, {"output_text", asText}, {"summary_text", asText}, {"reasoning_text", asText},
	{"refusal", asRefusal}, {"thinking", asThinking}, {"image_url", asImage}, {"input_image", asImage}, {"image_embeds", asImage},
	{"video_url", asVideo}, {"video_embeds", asVideo}, {"audio_url", asAudio}, {"input_audio", asAudio}, {"audio_embeds", asAudio},
	{"file", asFile}, {"input_file", asFile}, {"tool_reference", asReference}, {"prompt_embeds", asEmbeds},
}

// partKeys are the members of a part that reach the model, in canonical order: the tag of each, and what a part must be for it
// to count. The texts stand first. Its type and uuid count by what they say of the others.
var partKeys = [...]struct {
	name string
	tag  byte
	of   uint16
}{
	{"text", tagText, asText},
	{"refusal", tagText, asRefusal},
	{"thinking", tagText, asThinking},
	{"image_url", tagImage, asImage},
	{"image_embeds", tagImage, asImage},
	{"video_url", tagVideo, asVideo},
	{"video_embeds", tagVideo, asVideo},
	{"audio_url", tagAudio, asAudio},
	{"audio_embeds", tagAudio, asAudio},
	{"input_audio", tagAudio, asAudio},
	{"file", tagFile, asFile},
	{"file_data", tagFile, asFile},
	{"file_id", tagFile, asFile | asImage},
	{"file_url", tagFile, asFile},
	{"source", tagFile, asFile | asImage},
	{"name", tagReference, asReference},
	{"data", tagEmbeds, asEmbeds},
	{"type", 0, 0},
	{"uuid", 0, 0},
}

var partNames = func() (names [len(partKeys)]string) {
	for i, k := range partKeys {
		names[i] = k.name
	}
	return names
}()

const (
	partType  = len(partKeys) - 2
	partUUID  = len(partKeys) - 1
	partTexts = 3 // so many keys, from the first, are texts
)

// part scans one part of a content array. Its type tells which of its members counts; without one that is known, each
// that is there. If none is, it is one medium: it may be large, and is no text that could be counted.
func (p *Parser) part() {
	s := &p.scan
	start := s.i
	var v [len(partKeys)]span
	s.object(partNames[:], v[:], partTexts)
	as, typed := p.partAs(v[partType])
	if s.cut && !typed { // it may be anything yet
		return
	}
	known := typed
	for i, k := range partKeys {
		if k.of&as == 0 || v[i].end == 0 {
			continue
		}
		known = true
		switch {
		case s.cut && i >= partTexts: // a medium's hash stands behind all of it
		case i >= partTexts && k.of&(asReference|asEmbeds) == 0 && !p.absent(v[partUUID]):
			p.append(&p.parts, k.tag|byUUID, v[partUUID])
			return
		default:
			p.add(&p.parts, k.tag, v[i])
		}
	}
	if !known && s.reason == ReasonNone {
		p.append(&p.parts, tagFile, span{start, s.i})
	}
}

// partAs is what a part of that type is, and whether the type is known.
func (p *Parser) partAs(kind span) (as uint16, known bool) {
	for _, t := range partTypes {
		if p.is(kind, t.name) {
			return t.as, true
		}
	}
	return asUnknown, false
}
