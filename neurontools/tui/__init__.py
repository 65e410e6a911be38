"""The debugger on a whole terminal: panes around one session, which a worker thread owns."""
