package extproc

// Keep takes n bytes of the memory for bodies, as other streams would; negative: gives them back.
func (s *Server) Keep(n int64) bool { return s.memory.take(n) }
