// The vendor's name of the header with MPaaSInterface. As MPMssAdapter/MPSyncInterface.h beside it.
@import MobileSyncLegacy;
