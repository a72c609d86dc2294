package admin

import (
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/web"
)

func (p *Plugins) pause(c *web.Call) error {
	if err := p.delivery.Pause(c.UserContext(), c.Params("name"), "asked by "+c.Principal.User.Email); err != nil {
		return err
	}
	return p.answerDelivery(c)
}

func (p *Plugins) resume(c *web.Call) error {
	if err := p.delivery.Resume(c.UserContext(), c.Params("name")); err != nil {
		return err
	}
	return p.answerDelivery(c)
}

// answerDelivery answers with the state of the delivery to the sink.
func (p *Plugins) answerDelivery(c *web.Call) error {
	all, err := p.delivery.Status(c.UserContext())
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Sink == c.Params("name") {
			return web.JSON(c.Ctx, all[i])
		}
	}
	return delivery.ErrNoSink
}
