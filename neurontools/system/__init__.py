"""What Neuron's system tools show, of emulated instances: devices, metrics, a dashboard, the driver's tree."""
