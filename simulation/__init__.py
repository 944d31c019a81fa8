"""The real engine on simulated devices in virtual time: how many people a device will hold, before it is bought."""
