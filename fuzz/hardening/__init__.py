"""What makes memory errors visible: counts of references, sanitizers, emulated processors, debug builds."""
