// libcrypto, which librabbitmq and libpq use, for a call that this process makes itself.
#pragma once
#include <openssl/crypto.h>
