"""Many cores: instances, chips, links, and collectives that run over them."""
