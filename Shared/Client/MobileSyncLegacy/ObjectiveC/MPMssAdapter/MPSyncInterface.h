// The vendor's name of the header with MPSyncInterface, MPaaSInterface, MPLogger and MPSyncNetConnectType. With this
// folder's parent in the header search paths, an Objective-C app of the vendor's SDK keeps its imports.
@import MobileSyncLegacy;
