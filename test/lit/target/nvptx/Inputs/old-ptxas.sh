#!/bin/sh
# A ptxas that does not know the card.
echo "ptxas fatal   : Value 'sm_80' is not defined for option 'gpu-name'"
exit 1
