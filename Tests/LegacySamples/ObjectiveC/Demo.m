// The guide's iOS sample, rebuilt in Objective-C: an app that shows the data of one Sync ID. Not compiled here
// into a program: Tests/AppPackage/objective-c.sh checks its types on Linux.
#import <MPMssAdapter/MPSyncInterface.h>
#import <mPaas/MPaaSInterface.h>
@import Foundation;

// The app's user, as the guide has it: a category overrides userId.
static NSString *signedInUser;

@implementation MPaaSInterface (Demo)
- (NSString *)userId {
    return signedInUser;
}
@end

@interface DemoObserver : NSObject
@property(nonatomic) NSMutableArray *shown;
@end

@implementation DemoObserver

// The application has launched: initialise, which connects, and register.
- (void)launch {
    [MPSyncInterface initSync];
    BOOL isRegistered = [MPSyncInterface registerSyncBizWithName:@"UCHAT"
                                                    syncObserver:self
                                                        selector:@selector(receive:)];
    if (!isRegistered) [MPSyncInterface removeSyncNotificationObserver:self];
}

// As launch, for an app that names its files itself.
- (BOOL)launchWithFolder:(NSString *)folder {
    MPSyncApplication *application = [[MPSyncApplication alloc]
        initWithMetaConfigFile:[NSURL fileURLWithPath:[folder stringByAppendingPathComponent:@"meta.config"]]
                        folder:[NSURL fileURLWithPath:folder]
                      deviceId:nil];
    if (application == nil) return NO;
    [MPSyncInterface initSyncWith:application];
    return [MPSyncInterface connectStatus] != MPSyncNetConnectTypeConnectFailed;
}

- (BOOL)signIn:(NSString *)user session:(NSString *)session {
    signedInUser = user;
    [MPLogger setUserId:user];
    return [MPSyncInterface bindUserWithSessionId:session];
}

- (void)signOut {
    signedInUser = nil;
    [MPSyncInterface unBindUser];
}

// The notification of the Sync ID.
- (void)receive:(NSNotification *)notification {
    NSString *op = notification.userInfo[@"op"];
    [self.shown addObject:op];
    [MPSyncInterface responseMessageNotify:notification.userInfo];
}

- (NSString *)deviceId {
    return [MPSyncInterface getSyncDeviceId] ?: [UTDevice getUtdid];
}

- (void)end {
    [MPSyncInterface unRegisterSyncBizWithName:@"UCHAT" syncObserver:self];
    [MPSyncInterface unregisterSyncBizWithName:@"UCHAT" syncObserver:self];
}

@end
