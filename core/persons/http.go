package persons

// HTTP serves people and groups to their project.
type HTTP struct{ service *Service }

// NewHTTP returns the routes of s.
func NewHTTP(s *Service) *HTTP { return &HTTP{s} }
