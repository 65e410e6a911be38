"""The debugger for editors: Debug Adapter Protocol over the same session as prompt and screen."""
